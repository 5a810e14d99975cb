package projections

// The names of the projections.
const (
	// Directory is the projection of the stream DIRECTORY: organizations, members, sites, hubs and
	// keys.
	Directory = "directory"
	// Presence is the projection of the bucket `presence`: whether hubs are connected.
	Presence = "presence"
	// Devices is the projection of the hub logs: the last reported state of every device. It has
	// tables, checkpoints and a projector of its own, in package statemodel.
	Devices = "devices"
)

// Common returns the names of the projections that have a schema and a projector in common.
func Common() []string { return []string{Directory, Presence} }

// Names returns the names of all projections.
func Names() []string { return []string{Directory, Presence, Devices} }
