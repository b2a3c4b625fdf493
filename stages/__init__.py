"""What is computed: one folder a stage; stages meet through artifact kinds, never through each other."""
