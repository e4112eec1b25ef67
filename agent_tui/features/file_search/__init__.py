"""Tools that look for files and in them: `grep`, `find` and `ls`."""
