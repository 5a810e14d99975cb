package nodejs

import (
	"os"
	"path/filepath"
	"testing"

	"hubcloud/streams/streamstest"
)

// Radios packs the hub library for Node and the gateways on it as a release does. It returns the
// folder of their sources and what was made of them, laid out as hubbridge, with everything
// installed that they need, and the folder of the packed files.
func Radios(t testing.TB) (sources, packed string) {
	t.Helper()
	tools := Install(
		t, filepath.Join("..", "..", "hubbridge"), "radios",
		"kit/node", "gateway/zwave", "gateway/zigbee2mqtt",
	)
	sources, err := os.MkdirTemp(tools, "run-")
	streamstest.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(sources) })
	packed = t.TempDir()
	Run(t, Command(t, filepath.Join("..", ".."), "deploy/release/npm.sh", packed, sources))
	return sources, packed
}
