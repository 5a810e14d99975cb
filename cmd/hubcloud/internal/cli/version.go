package cli

import "hubcloud/cmd/hubcloud/internal/installation"

// versionCommand prints what identifies the program.
type versionCommand struct {
	outputFlags
}

// Help returns the long help text.
func (c *versionCommand) Help() string {
	return `Prints the version, the commit and its date, the Go toolchain, and the hash of the read models' definition: programs with the same hash share
read models. What a build did not record is "unknown".`
}

// Run prints one line for each field, or one JSON object.
func (c *versionCommand) Run(out Output) error {
	info := installation.Program()
	return c.show(
		out.Out, info, "hubcloud %s\ncommit   %s\nbuilt    %s\ngo       %s\nschema   %s\n",
		info.Version, info.Commit, info.Date, info.Go, info.Schema,
	)
}
