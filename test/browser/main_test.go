package browser

import (
	"testing"

	"hubcloud/test/harness"
)

func TestMain(m *testing.M) {
	// A browser takes more memory than a service, and the tests wait for pages more than they compute.
	harness.Main(m, 3)
}
