"""What the file tools share: reading and writing text, walking folders, images, differences."""
