package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"hubcloud/streams"
)

const (
	manifestName = "manifest.json"
	sumsName     = "SHA256SUMS"
	// unfinishedName is the file that a folder has while a backup is being written.
	unfinishedName = "UNFINISHED"
)

// ErrDamaged reports that a file of a backup is missing, cut or changed. The error names the file.
var ErrDamaged = errors.New("the backup is damaged")

// ErrUnfinished reports that a folder has no backup, or an unfinished one.
var ErrUnfinished = errors.New("no finished backup")

// Manifest describes a backup.
type Manifest struct {
	// Format is the format of the installation's streams. Programs that read an older one only do
	// not restore the backup.
	Format int `json:"format"`
	// Installation is the id of the installation.
	Installation string `json:"installation"`
	// BeganAt is when the backup was begun. At is when the snapshot of the directory was taken: the
	// backup has nothing later.
	BeganAt time.Time `json:"began_at"`
	At      time.Time `json:"at"`
	// Shards is the number of shards of the installation. A broker that the backup is restored to
	// must have the same number.
	Shards int `json:"shards"`
	// Directory is the sequence of the last event of the DIRECTORY.
	Directory uint64 `json:"directory_sequence"`
	// HubLogs reports whether the backup has the hub logs.
	HubLogs bool `json:"hub_logs"`
	// Broker is the version of the installation's broker.
	Broker string `json:"broker"`
	Files  []File `json:"files"`
}

// File is one file of a backup.
type File struct {
	// Name is the slash-separated path in the backup.
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Bucket is the bucket whose keys the file has, one a line.
	Bucket string `json:"bucket,omitempty"`
	// Stream is the stream whose snapshot the file is.
	Stream *Stream `json:"stream,omitempty"`
}

// Stream describes a stream at the moment of its snapshot.
type Stream struct {
	Name     string `json:"name"`
	Messages uint64 `json:"messages"`
	First    uint64 `json:"first_sequence"`
	Last     uint64 `json:"last_sequence"`
	// Config is the stream's configuration in the broker's JSON.
	Config json.RawMessage `json:"config"`
}

// Bytes returns the size of all files together.
func (m Manifest) Bytes() (sum int64) {
	for _, f := range m.Files {
		sum += f.Bytes
	}
	return sum
}

// Has reports whether the backup has a file of that name.
func (m Manifest) Has(name string) bool {
	for _, f := range m.Files {
		if f.Name == name {
			return true
		}
	}
	return false
}

// encode returns the manifest as JSON that people can read: the head, then one file a line.
func (m Manifest) encode() ([]byte, error) {
	files := m.Files
	m.Files = nil
	head, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	text := append(bytes.TrimSuffix(head, []byte("null\n}")), '[')
	for i, f := range files {
		line, err := json.Marshal(f)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, "\n    "...), line...)
	}
	return append(text, "\n  ]\n}\n"...), nil
}

// parseManifest decodes a manifest and checks what Restore relies on. newest is the newest format
// that the program reads. Errors are ErrDamaged, except for a newer format.
func parseManifest(text []byte, newest int) (m Manifest, err error) {
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return m, fmt.Errorf("%w: %s is not a manifest", ErrDamaged, manifestName)
	}
	if head.Format < 1 {
		return m, fmt.Errorf("%w: %s has the format %d", ErrDamaged, manifestName, head.Format)
	}
	if head.Format > newest {
		return m, fmt.Errorf(
			"the backup has format %d, and this program restores up to format %d: use the version "+
				"of hubcloud that wrote it, or a newer one",
			head.Format, newest,
		)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%w: %s is not a manifest", ErrDamaged, manifestName)
	}
	directories := 0
	for _, f := range m.Files {
		// A name must not point outside the folder.
		if f.Name == "" || path.Clean("/"+f.Name) != "/"+f.Name ||
			strings.ContainsAny(f.Name, "\\\n\x00") {
			return m, fmt.Errorf("%w: %s names the file %q", ErrDamaged, manifestName, f.Name)
		}
		if f.Stream != nil && f.Stream.Name == streams.DirectoryStream {
			directories++
		}
	}
	if directories != 1 || m.Shards < 1 || m.Shards > streams.MaxShards {
		return m, fmt.Errorf(
			"%w: %s has %d directories and %d shards", ErrDamaged, manifestName, directories,
			m.Shards,
		)
	}
	return m, nil
}

// sums returns the text of SHA256SUMS in the format of sha256sum.
func (m Manifest) sums(manifestSum string) string {
	var text strings.Builder
	for _, f := range m.Files {
		fmt.Fprintf(&text, "%s  %s\n", f.SHA256, f.Name)
	}
	fmt.Fprintf(&text, "%s  %s\n", manifestSum, manifestName)
	return text.String()
}
