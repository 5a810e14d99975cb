package operators

import (
	"testing"

	"hubcloud/test/harness"
)

func TestMain(m *testing.M) {
	// The tests wait for services and hubs far more than they compute.
	harness.Main(m, 4)
}
