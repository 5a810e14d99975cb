package deploy

import (
	"os"
	"testing"

	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

func TestMain(m *testing.M) {
	natscluster.ServeIfRequested()
	harness.Main(m, 0)
}

// read returns a file of the folder deploy/.
func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../deploy/" + name)
	harness.Must(t, err)
	return text
}
