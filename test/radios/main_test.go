package radios

import (
	"testing"

	"hubcloud/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m, 3) }
