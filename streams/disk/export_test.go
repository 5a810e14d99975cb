package disk

// Descriptor returns the file descriptor of a lock.
func Descriptor(l *Lock) uintptr { return l.file.Fd() }
