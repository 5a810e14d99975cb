package faults

import (
	"testing"

	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

func TestMain(m *testing.M) {
	natscluster.ServeIfRequested()
	// The tests wait for outages to end far more than they compute.
	harness.Main(m, 3)
}
