package backup

import (
	"bytes"
	"path/filepath"
	"testing"
)

// A manifest that is taken leads nowhere out of the backup's folder.
func FuzzManifest(f *testing.F) {
	f.Add(
		[]byte(
			`{"format":1,"shards":4,"files":[{"name":"streams/DIRECTORY.snapshot","stream":{"account":"CLOUD","name":"DIRECTORY"}}]}`,
		),
	)
	f.Add(
		[]byte(
			`{"format":1,"shards":4,"files":[{"name":"../x","stream":{"account":"CLOUD","name":"DIRECTORY"}}]}`,
		),
	)
	f.Add([]byte(`{"format":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(text)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if !filepath.IsLocal(filepath.FromSlash(file.Name)) {
				t.Errorf("takes a file %q", file.Name)
			}
		}
	})
}

// A line that is taken is one key.
func FuzzEntry(f *testing.F) {
	f.Add([]byte(`{"key":"a.b","value":"eA=="}`))
	f.Add([]byte(`{"key":"a.>","gone":true}`))
	f.Add([]byte(`{"key":"a\r\nPUB x"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, err := parseEntry(line); err == nil &&
			(e.Key == "" || bytes.ContainsAny([]byte(e.Key), " *>\r\n\t")) {
			t.Errorf("takes the key %q", e.Key)
		}
	})
}

// What is no whole snapshot is an error, and ends.
func FuzzInspect(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\xff\x06\x00\x00S2sTwO"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if messages, err := inspect(bytes.NewReader(raw), func(int64) {}); err == nil &&
			messages > uint64(len(raw)) {
			t.Errorf("%d messages in %d bytes", messages, len(raw))
		}
	})
}
