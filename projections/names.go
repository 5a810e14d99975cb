package projections

// The names of the projections.
const (
	// Directory is the projection of the stream DIRECTORY: organizations, members, sites, hubs and
	// keys.
	Directory = "directory"
	// Presence is the projection of the bucket `presence`: whether hubs are connected.
	Presence = "presence"
)

// Names returns the names of all projections.
func Names() []string { return []string{Directory, Presence} }
