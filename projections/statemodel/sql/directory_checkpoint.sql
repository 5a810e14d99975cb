-- How far the read models that are in use have the directory.
SELECT sequence FROM checkpoints WHERE projection = 'directory'
