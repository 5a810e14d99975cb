package datadir

import (
	"errors"
	"fmt"
	"io/fs"
)

// Format is the number of the data directory's format, which this program writes and reads. It also
// reads every earlier one. Increase it with a change of the stored streams or files that an earlier
// program would misread, describe the change here and in deploy/README.md, and keep a directory of
// the former format in test/upgrade.
//
//	1  the first one; directories without format.json have it too
//	2  hub logs are written through a journal, which also has records of the state of hubs' devices
const Format = 2

// formatFile is the content of format.json.
type formatFile struct {
	Format int `json:"format"`
	// Version is the version of the program that wrote the directory last.
	Version string `json:"version"`
}

// CheckFormat returns an error if the directory has a newer format than this program reads.
// version is the program's version.
func (d Dir) CheckFormat(version string) error {
	found, err := d.format()
	if err != nil {
		return err
	}
	if found.Format > Format {
		return fmt.Errorf(
			"data directory %s was written by hubcloud %s, format %d; this binary (hubcloud %s) "+
				"reads up to format %d: start that version or a later one",
			d, found.Version, found.Format, version, Format,
		)
	}
	return nil
}

// RecordFormat records that this program, of a version, writes the directory. It must follow
// CheckFormat, and come before anything that an earlier program could misread.
func (d Dir) RecordFormat(version string) error {
	wanted := formatFile{Format, version}
	if found, err := d.format(); err == nil && found == wanted {
		return nil
	}
	return d.write(FormatFile, wanted, 0o644)
}

// format reads format.json. Without the file the format is 1.
func (d Dir) format() (formatFile, error) {
	var found formatFile
	err := d.read(FormatFile, &found)
	if errors.Is(err, fs.ErrNotExist) {
		return formatFile{Format: 1}, nil
	}
	if err == nil && found.Format < 1 {
		err = fmt.Errorf("%s: format must be at least 1", d.Path(FormatFile))
	}
	return found, err
}
