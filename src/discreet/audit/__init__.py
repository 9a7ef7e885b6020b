"""Evidence that the privacy claimed is the privacy delivered."""
