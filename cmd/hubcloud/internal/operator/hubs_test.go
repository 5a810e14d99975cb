package operator_test

import (
	"testing"

	"hubcloud/cmd/hubcloud/internal/operator"
)

func TestNewHubID(t *testing.T) {
	t.Parallel()
	first, ok := operator.NewHubID("hub")
	second, _ := operator.NewHubID("hub")
	if !ok || first == second {
		t.Errorf("NewHubID returned %s, %v and then %s", first, ok, second)
	}
	if _, ok := operator.NewHubID("Hub"); ok {
		t.Error("NewHubID accepted a prefix with an upper-case letter")
	}
}
