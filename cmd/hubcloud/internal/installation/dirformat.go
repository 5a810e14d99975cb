package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Format is the number of the data directory's format, which this program writes and reads.
// Increase it with a change of the stored streams or files that an earlier program would misread,
// and describe the change in deploy/README.md.
const Format = 1

// CheckFormat returns an error if this program does not read the directory.
func (d Dir) CheckFormat() error {
	found, recorded, err := d.format()
	switch {
	case err != nil:
		return err
	case recorded && found.Format > Format:
		return fmt.Errorf(
			"data directory %s was written by hubcloud %s, format %d; this binary (hubcloud %s) "+
				"reads up to format %d: start that version or a later one",
			d, found.Version, found.Format, Program().Version, Format,
		)
	case !recorded && d.isUsed():
		return fmt.Errorf(
			"data directory %s has no %s, so it is of no released version of hubcloud: use another "+
				"--data-dir, or restore a backup into an empty one", d, FormatFile,
		)
	}
	return nil
}

// isUsed reports whether an embedded broker has used the directory, which it does after
// RecordFormat.
func (d Dir) isUsed() bool {
	_, err := os.Stat(d.Path("nats"))
	return err == nil
}

// Recorded reports whether the directory has a format.
func (d Dir) Recorded() bool {
	_, recorded, _ := d.format() // CheckFormat reports the error
	return recorded
}

// RecordFormat records that this program writes the directory. It must follow
// CheckFormat, and come before anything that an earlier program could misread.
func (d Dir) RecordFormat() error {
	wanted := formatRecord{Format, Program().Version}
	if found, _, err := d.format(); err == nil && found == wanted {
		return nil
	}
	return d.write(FormatFile, wanted, 0o644)
}

// format reads format.json, and reports whether the file exists.
func (d Dir) format() (found formatRecord, recorded bool, err error) {
	err = d.read(FormatFile, &found)
	if errors.Is(err, fs.ErrNotExist) {
		return formatRecord{}, false, nil
	}
	if err == nil && found.Format < 1 {
		err = fmt.Errorf("%s: format must be at least 1", d.Path(FormatFile))
	}
	return found, true, err
}
