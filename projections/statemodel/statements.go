package statemodel

import _ "embed"

// The statements, with {schema} for the name of the schema.
var (
	//go:embed sql/write_hubs.sql
	writeHubs string
	//go:embed sql/write_devices.sql
	writeDevices string
	//go:embed sql/write_channels.sql
	writeChannels string
	//go:embed sql/delete_parts.sql
	deleteParts string
	//go:embed sql/delete_hubs.sql
	deleteHubs string
	//go:embed sql/released_hubs.sql
	releasedHubs string
	//go:embed sql/directory_checkpoint.sql
	directoryCheckpoint string
	//go:embed sql/advance.sql
	advance string
	//go:embed sql/reset.sql
	reset string
	//go:embed sql/lose.sql
	lose string
	//go:embed sql/checkpoint.sql
	readCheckpoint string
	//go:embed sql/load_hubs.sql
	loadHubs string
	//go:embed sql/load_devices.sql
	loadDevices string
	//go:embed sql/load_channels.sql
	loadChannels string
	//go:embed sql/built.sql
	builtQuery string
	//go:embed sql/take_over.sql
	takeOver string
	//go:embed sql/positions.sql
	positionsQuery string
)
