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
	// formatVersion is raised when an older program could not restore what a newer one writes.
	formatVersion = 1

	manifestName = "manifest.json"
	sumsName     = "SHA256SUMS"
	// unfinishedName is there while a backup is being written.
	unfinishedName = "UNFINISHED"
)

// ErrDamaged says that a backup is not what was written: a file is missing, cut or changed. The
// error names it.
var ErrDamaged = errors.New("the backup is damaged")

// ErrUnfinished says that a folder holds no backup, or one that was not finished.
var ErrUnfinished = errors.New("no finished backup")

// Manifest says what a backup is.
type Manifest struct {
	Format int `json:"format"`
	// Installation is the id of the installation that it is of.
	Installation string `json:"installation"`
	// BeganAt is when it was begun, and At the moment that it shows: what happened later is not in
	// it.
	BeganAt time.Time `json:"began_at"`
	At      time.Time `json:"at"`
	// Shards is over how many accounts hub logs are spread, in the installation and wherever it is
	// restored.
	Shards int `json:"shards"`
	// Directory is the sequence of the last event of the DIRECTORY.
	Directory uint64 `json:"directory_sequence"`
	// HubLogs says whether the hub logs are in it.
	HubLogs bool `json:"hub_logs"`
	// Broker is the version of the broker that it was taken from.
	Broker string `json:"broker"`
	Files  []File `json:"files"`
}

// File is one file of a backup.
type File struct {
	// Name is its path in the backup, with slashes.
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Bucket is the bucket whose keys it holds, one a line.
	Bucket string `json:"bucket,omitempty"`
	// Stream is the stream that it is a snapshot of.
	Stream *Stream `json:"stream,omitempty"`
}

// Stream is a stream as it was taken.
type Stream struct {
	Account  streams.Account `json:"account"`
	Name     string          `json:"name"`
	Messages uint64          `json:"messages"`
	First    uint64          `json:"first_sequence"`
	Last     uint64          `json:"last_sequence"`
	// Config is its configuration, as the broker writes it.
	Config json.RawMessage `json:"config"`
}

// Bytes is how much all files have.
func (m Manifest) Bytes() (sum int64) {
	for _, f := range m.Files {
		sum += f.Bytes
	}
	return sum
}

// Has says whether a file is in the backup.
func (m Manifest) Has(name string) bool {
	for _, f := range m.Files {
		if f.Name == name {
			return true
		}
	}
	return false
}

// encode writes the manifest for people too: what it is of, then one file a line.
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

// parseManifest reads a manifest and checks what restoring relies on.
func parseManifest(text []byte) (m Manifest, err error) {
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return m, fmt.Errorf("%w: %s is not a manifest", ErrDamaged, manifestName)
	}
	if head.Format != formatVersion {
		return m, fmt.Errorf(
			"the backup has format %d, and this program restores format %d: use the version of "+
				"hubcloud that wrote it, or a newer one",
			head.Format,
			formatVersion,
		)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%w: %s is not a manifest", ErrDamaged, manifestName)
	}
	directories := 0
	for _, f := range m.Files {
		// A name must not lead out of the folder.
		if f.Name == "" || path.Clean("/"+f.Name) != "/"+f.Name ||
			strings.ContainsAny(f.Name, "\\\n\x00") {
			return m, fmt.Errorf("%w: %s names a file %q", ErrDamaged, manifestName, f.Name)
		}
		if f.Stream != nil && f.Stream.Name == streams.DirectoryStream &&
			f.Stream.Account == streams.AccountCloud {
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

// sums is the text of SHA256SUMS, as sha256sum writes and checks it.
func (m Manifest) sums(manifestSum string) string {
	var text strings.Builder
	for _, f := range m.Files {
		fmt.Fprintf(&text, "%s  %s\n", f.SHA256, f.Name)
	}
	fmt.Fprintf(&text, "%s  %s\n", manifestSum, manifestName)
	return text.String()
}
