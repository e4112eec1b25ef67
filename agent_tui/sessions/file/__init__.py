"""Write session files safely: lock, append, migrate, and read parts of them."""
