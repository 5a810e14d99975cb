package doctor

import (
	"context"
	"errors"
	"fmt"

	"hubcloud/projections/schema"
	"hubcloud/streams"
)

// errNoDirectory reports that the broker has no installation.
var errNoDirectory = errors.New("the broker has no directory")

// checkProjections checks how far the read models are behind their streams, and whether they are
// stopped.
func checkProjections(ctx context.Context, t *target, f *findings) {
	if _, err := t.database(); err != nil {
		if errors.Is(err, errNoDatabase) && t.DataDir == "" {
			f.skip("unknown without the database").todo("name it with --postgres-url to check them")
			return
		}
		f.unclear("unknown: the database cannot be reached").todo("see the component postgres")
		return
	}
	all, err := t.projections(ctx)
	switch {
	case errors.Is(err, errNoBroker), errors.Is(err, errNoDirectory):
		f.unclear("unknown: %v", err).todo("see the components broker and logs")
		return
	case err != nil:
		f.wrong("unknown: %v", withoutLogin(err)).todo(
			"if the database is the right one, start the service: it fills the database from the " +
				"streams",
		)
		return
	}
	for _, status := range all {
		judgeProjection(t.Limits, status, f)
	}
}

// projections returns the status of the projections. Without an installation it returns
// errNoDirectory: the query itself would create one.
func (t *target) projections(ctx context.Context) ([]schema.Status, error) {
	cloud, err := t.cloud()
	if err != nil {
		return nil, err
	}
	if _, ok := find(cloud, streams.DirectoryStream); !ok {
		return nil, errNoDirectory
	}
	conns, err := t.conns()
	if err != nil {
		return nil, errNoBroker
	}
	return t.Projections(ctx, conns)
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
