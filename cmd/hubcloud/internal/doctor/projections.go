package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"hubcloud/cmd/hubcloud/internal/doctor/survey"
	"hubcloud/projections"
	"hubcloud/streams"
)

// errNoDirectory says that the broker has no installation on it.
var errNoDirectory = errors.New("the directory is not on the broker")

// checkProjections says how far the read models are behind their streams, and what stops them.
func checkProjections(ctx context.Context, p *patient, f *findings) {
	if _, err := p.database(); err != nil {
		if errors.Is(err, errNoDatabase) && p.DataDir == "" {
			f.add(
				Skipped, "cannot be told without the database",
				"name it with --postgres-url to have them looked at, too",
			)
			return
		}
		f.add(
			Unknown, "cannot be told: the database cannot be reached", "see the component postgres",
		)
		return
	}
	all, err := p.projections(ctx)
	switch {
	case errors.Is(err, errNoBroker), errors.Is(err, errNoDirectory):
		f.add(Unknown, fmt.Sprintf("cannot be told: %v", err), "see the components broker and logs")
		return
	case err != nil:
		f.add(Wrong, fmt.Sprintf("cannot be told: %v", withoutLogin(err)),
			"if the database is the right one, start the service: it fills it from the streams")
		return
	}
	for _, status := range all {
		judgeProjection(p.Limits, status, f)
	}
}

// projections asks for their status, if there is an installation to ask about: looking must not
// make one.
func (p *patient) projections(ctx context.Context) ([]projections.Status, error) {
	cloud, err := p.cloud()
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(
		cloud, func(s survey.Stream) bool { return s.Name == streams.DirectoryStream },
	) {
		return nil, errNoDirectory
	}
	conns, err := p.broker()
	if err != nil {
		return nil, errNoBroker
	}
	return p.Projections(ctx, conns)
}

func judgeProjection(limits Limits, s projections.Status, f *findings) {
	at := fmt.Sprintf("%s at %d of %d", s.Name, s.Sequence, s.Head)
	if s.Lag > 0 {
		at = fmt.Sprintf("%s, for %s", at, ago(s.Behind))
	}
	switch s.State {
	case projections.StateStopped:
		advice := "it goes on once a program that understands the event runs"
		if s.Stopped != nil && s.Stopped.Sequence > s.Sequence {
			advice += fmt.Sprintf(
				", or without the event: hubcloud projections skip %d --why REASON",
				s.Stopped.Sequence,
			)
		}
		f.add(Wrong, fmt.Sprintf("%s stands still: %s", at, s.Reason), advice)
	case projections.StateStoppedByOperator:
		f.add(
			Warning, fmt.Sprintf("%s stands still: %s", at, s.Reason),
			"it goes on with: hubcloud projections resume "+s.Name,
		)
	case projections.StateUnattended:
		f.add(
			Wrong, fmt.Sprintf("%s is %s", at, s.Reason),
			"see why the service with that role does not reach the database",
		)
	case projections.StateBuilding:
		f.add(
			Warning, fmt.Sprintf("%s is being built", at),
			"wait: requests are answered once it is complete; see how far it is with `hubcloud projections status`",
		)
	default:
		if s.Behind > limits.Lag {
			f.add(
				Wrong, fmt.Sprintf("%s is behind", at),
				"see the service's log and the load of the database: what was changed since is not in lists yet",
			)
			return
		}
		f.note("%s", at)
	}
}
