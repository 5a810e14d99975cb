package backup

import (
	"path/filepath"
	"strings"
	"testing"
)

// FuzzManifest checks that no file of an accepted manifest is outside the backup's folder.
func FuzzManifest(f *testing.F) {
	for _, name := range []string{"streams/DIRECTORY.snapshot", "../x"} {
		f.Add([]byte(
			`{"format":1,"shards":4,"files":[` +
				`{"name":"` + name + `","stream":{"account":"CLOUD","name":"DIRECTORY"}}]}`,
		))
	}
	f.Add([]byte(`{"format":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(text, 1)
		if err != nil {
			return
		}
		for _, file := range m.Files {
			if !filepath.IsLocal(filepath.FromSlash(file.Name)) {
				t.Errorf("accepted the file %q", file.Name)
			}
		}
	})
}

// FuzzEntry checks that an accepted line has a key that is part of a single subject.
func FuzzEntry(f *testing.F) {
	f.Add([]byte(`{"key":"a.b","value":"eA=="}`))
	f.Add([]byte(`{"key":"a.>","gone":true}`))
	f.Add([]byte(`{"key":"a\r\nPUB x"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, err := parseEntry(line); err == nil &&
			(e.Key == "" || strings.ContainsAny(e.Key, " *>\r\n\t")) {
			t.Errorf("accepted the key %q", e.Key)
		}
	})
}

// FuzzInspect checks that inspect ends for all bytes, and that no snapshot has more messages than
// bytes.
func FuzzInspect(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\xff\x06\x00\x00S2sTwO"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		messages, err := inspect(strings.NewReader(string(raw)), func(int64) {})
		if err == nil && messages > uint64(len(raw)) {
			t.Errorf("got %d messages in %d bytes", messages, len(raw))
		}
	})
}
