package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
)

// The command repairs the store of a nats-server and names the streams that it repaired. Package
// broker tries with a server that the messages are back then.
func TestBrokerRepair(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	folder := filepath.Join(store, "jetstream", "$G", "streams", "HUB_hub1")
	streamstest.Must(t, os.MkdirAll(folder, 0o700))
	sum := filepath.Join(folder, "meta.sum")
	for path, text := range map[string]string{
		filepath.Join(folder, "meta.inf"): `{"name":"HUB_hub1","retention":"limits","storage":"file"}`,
		sum:                               "0123456789abcdef",
	} {
		streamstest.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	printed, code := said(t, "broker-repair", store)
	repaired, err := os.ReadFile(sum)
	streamstest.Must(t, err)
	if code != exitOK || !strings.Contains(printed, "HUB_hub1") || len(repaired) != 16 ||
		string(repaired) == "0123456789abcdef" {
		t.Errorf("got exit code %d, checksum %q, printed %q; want the stream named and a new checksum",
			code, repaired, printed)
	}
	if again, code := said(t, "broker-repair", store); code != exitOK || strings.Contains(again, "HUB_hub1") {
		t.Errorf("a store without damage: got exit code %d, printed %q", code, again)
	}
	if printed, code := said(t, "broker-repair", t.TempDir()); code != exitUsage {
		t.Errorf("a folder without a store: got exit code %d, want %d: %s", code, exitUsage, printed)
	}
}
