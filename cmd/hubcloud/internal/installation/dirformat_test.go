package installation

import (
	"os"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		content string
		says    []string // of the error; nil for none
	}{
		"an empty directory": {"", nil},
		"this format":        {`{"format":1,"version":"1.0.0"}`, nil},
		"a newer format":     {`{"format":99,"version":"9.1.0"}`, []string{"9.1.0", "format 99", Program().Version}},
		"no number":          {`{}`, []string{"at least 1"}},
		"not JSON":           {`format 1`, []string{FormatFile}},
	} {
		d := Dir(t.TempDir())
		if c.content != "" {
			streamstest.Must(t, os.WriteFile(d.Path(FormatFile), []byte(c.content), 0o600))
		}
		err := d.CheckFormat()
		if (err == nil) != (c.says == nil) {
			t.Errorf("%s: got %v", name, err)
		}
		for _, part := range c.says {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %q, want %q in it", name, err, part)
			}
		}
	}
	d := Dir(t.TempDir())
	streamstest.Must(t, os.Mkdir(d.Path("nats"), 0o700))
	if err := d.CheckFormat(); err == nil || !strings.Contains(err.Error(), FormatFile) {
		t.Errorf("a used directory without a format: got %v, want an error", err)
	}
	streamstest.Must(t, d.RecordFormat())
	if got, recorded, err := d.format(); !recorded || err != nil || got != (formatRecord{Format, Program().Version}) {
		t.Errorf("recorded: got %+v, %v, want format %d of this program", got, err, Format)
	}
}
