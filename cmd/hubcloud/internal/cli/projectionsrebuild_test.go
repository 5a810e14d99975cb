package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	"hubcloud/projections/schema"
)

// Regression: an interrupt after the switch printed that the read models in use were unchanged.
func TestRebuildError(t *testing.T) {
	t.Parallel()
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if err := rebuildError(interrupted, nil); err != nil {
		t.Errorf("interrupted after the switch: got %v, want no error", err)
	}
	stopped := &schema.StoppedError{
		Projection: schema.Directory, Sequence: 7, Err: errors.New("not an event"),
	}
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"interrupted": {interrupted, context.Canceled, "interrupted; the read models in use"},
		"stopped":     {t.Context(), stopped, "`hubcloud projections status` shows"},
		"other":       {t.Context(), errors.New("no disk"), "no disk"},
	} {
		if err := rebuildError(test.ctx, test.err); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
