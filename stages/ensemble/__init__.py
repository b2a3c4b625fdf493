"""Several models' label scores made one."""
