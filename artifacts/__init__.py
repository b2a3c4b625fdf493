"""What is kept: results on disk that are whole, checked and never overwritten."""
