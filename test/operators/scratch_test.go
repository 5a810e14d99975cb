package operators

import (
	"os"
	"testing"
	"time"

	"hubcloud/test/harness"
)

func TestScratch(t *testing.T) {
	dir := os.Getenv("SCRATCH_DIR")
	s := harness.StartIn(t, dir, unlimited...)
	populate(t, s, scale{events: 200000, orgs: 500}, 1)
	os.WriteFile(dir+"/ready", nil, 0o644)
	for {
		time.Sleep(time.Second)
		if _, err := os.Stat(dir + "/done"); err == nil {
			return
		}
	}
}
