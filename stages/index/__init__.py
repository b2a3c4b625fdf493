"""Label embeddings, and the balanced clusters they fall into."""
