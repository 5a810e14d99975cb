package https

import (
	"os"
	"testing"

	"hubcloud/test/harness"
)

func TestMain(m *testing.M) {
	// Pebble waits and rejects nonces at random unless these tell it not to.
	os.Setenv("PEBBLE_VA_NOSLEEP", "1")
	os.Setenv("PEBBLE_WFE_NONCEREJECT", "0")
	harness.Main(m, 0)
}
