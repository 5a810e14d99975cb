package upgrade

import (
	"testing"

	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

func TestMain(m *testing.M) {
	natscluster.ServeIfRequested()
	harness.Main(m, 0)
}
