package alarmstate_test

import (
	"testing"

	"go.uber.org/goleak"

	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }
