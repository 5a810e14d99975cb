package browser

import (
	"testing"

	"hubcloud/test/harness"
)

func TestMain(m *testing.M) {
	// A browser takes more CPU and memory than a service.
	harness.Main(m, 2)
}
