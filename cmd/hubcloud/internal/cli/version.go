package cli

import "hubcloud/cmd/hubcloud/internal/installation"

// versionCommand prints what identifies the program.
type versionCommand struct {
	outputFlags
}

// Run prints one line for each field, or one JSON object.
func (c *versionCommand) Run(out Output) error {
	info := installation.Program()
	return c.show(
		out.Out, info, "hubcloud %s\ncommit   %s\nbuilt    %s\ngo       %s\nschema   %s\n",
		info.Version, info.Commit, info.Date, info.Go, info.Schema,
	)
}
