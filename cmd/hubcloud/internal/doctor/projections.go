package doctor

import (
	"context"
	"fmt"

	"hubcloud/projections/schema"
)

// checkProjections checks how far the read models are behind their streams, and whether they are
// stopped.
func checkProjections(ctx context.Context, v *visit, f *findings) {
	all, err := v.Projections(ctx)
	if err != nil {
		f.unclear("unknown: %v", withoutLogin(err)).todo("see the components postgres and broker")
		return
	}
	for _, status := range all {
		judgeProjection(v.limits, status, f)
	}
}

// judgeProjection reports a projection that is stopped or behind.
func judgeProjection(limits Limits, s schema.Status, f *findings) {
	at := fmt.Sprintf("%s at %d of %d", s.Name, s.Sequence, s.Head)
	if s.Lag > 0 {
		at = fmt.Sprintf("%s, behind by %s", at, ago(s.Behind))
	}
	switch s.State {
	case schema.StateStopped:
		advice := "build the read models again: hubcloud projections rebuild"
		if s.StoppedByEvent() {
			advice = fmt.Sprintf(
				"run a program that understands the event, or skip it: hubcloud projections skip "+
					"%d --why REASON",
				s.Stopped.Sequence,
			)
		}
		f.wrong("%s is stopped: %s", at, s.Reason).todo(advice)
	case schema.StateStoppedByOperator:
		f.warn("%s is stopped: %s", at, s.Reason).todo(
			"resume it: hubcloud projections resume " + s.Name,
		)
	case schema.StateUnattended:
		f.wrong("%s is %s", at, s.Reason).todo(
			"check why the service with the role projector does not reach the database",
		)
	case schema.StateBuilding:
		f.warn("%s is being built", at).todo(
			"wait until it is complete; `hubcloud projections status` shows its progress",
		)
	default:
		f.grade(
			verdictIf(s.Behind > limits.Lag, Wrong),
			"see the service's log and the load of the database: lists do not show recent changes",
			"%s", at,
		)
	}
}
