"""What is learned: stages, mixture, losses, trainer, evaluation; reads only files."""
