package server

import (
	"context"
	"errors"
	"fmt"

	"hubcloud/projections/readmodel"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

// checkBroker checks the connections to the broker.
func (s *infrastructure) checkBroker(context.Context) (string, *problem) {
	down := 0
	all := s.conns.All()
	for _, conn := range all {
		if !conn.IsConnected() {
			down++
		}
	}
	if down == 0 {
		return fmt.Sprintf("%d connections", len(all)), nil
	}
	return "", &problem{
		detail: fmt.Sprintf("%d of %d connections to the broker are down", down, len(all)),
		action: "check that the broker runs and that --nats-url leads to it; the service " +
			"reconnects by itself",
	}
}

// checkDisk checks whether the embedded broker can and may store. While the disk has less than the
// reserve free, the service rejects hub events, changes and commands, and still answers reads.
func (s *infrastructure) checkDisk(context.Context) (string, *problem) {
	space := s.space.State()
	if cause, since := s.broker.StoreFailed(); !since.IsZero() {
		return "", &problem{
			detail: "the broker cannot write to its disk: hub events, changes and commands are " +
				"rejected",
			action: "free space on the disk of --data-dir, or repair the disk; the broker " +
				"recovers by itself within seconds",
			cause: errors.New(cause), lasting: true, serves: true,
		}
	}
	if space.Low && space.NoFiles {
		return "", &problem{
			detail: fmt.Sprintf(
				"%d files (inodes) are free and %d are the reserve: hub events, changes and "+
					"commands are rejected",
				space.FreeFiles, space.FilesReserve,
			),
			action: "remove files that are not the service's from the disk of --data-dir, or use " +
				"a file system with more inodes (df -i); the service recovers by itself",
			lasting: true, serves: true,
		}
	}
	if space.Low {
		return "", &problem{
			detail: fmt.Sprintf(
				"%d MiB are free and %d MiB are the reserve: hub events, changes and commands "+
					"are rejected",
				space.Free>>20, space.Reserve>>20,
			),
			action:  "free space on the disk of --data-dir; the service recovers by itself",
			lasting: true, serves: true,
		}
	}
	free := (space.Free - space.Reserve) >> 20
	return fmt.Sprintf("%d MiB are free beyond the reserve of %d MiB", free, space.Reserve>>20), nil
}

// checkReadModels checks whether the database answers, is complete, and is kept up to date. The
// replica serves without it what needs no read models. Only while a replica of another version
// serves everything, a replica that builds its read models leaves the requests to that one.
func (s *readModels) checkReadModels(ctx context.Context) (string, *problem) {
	err := s.store.Ready(ctx)
	var stopped *schema.StoppedError
	switch {
	case errors.Is(err, schema.ErrBuilding):
		others, _ := s.store.OtherVersionServes(ctx) // no answer: the database is away again
		return "", &problem{
			detail: err.Error() + ": lists and single reads are answered 503", cause: err,
			lasting: true, serves: !others,
			action: "wait until they are built; hubcloud projections status shows the progress",
		}
	case errors.As(err, &stopped):
		return "", &problem{
			detail: stopped.Error(), cause: err, lasting: true, serves: true,
			action: "reads show the state before that event; `hubcloud projections status` says " +
				"what to do",
		}
	case errors.Is(err, directory.ErrReadModelsStopped):
		return "", &problem{
			detail: err.Error(), cause: err, lasting: true, serves: true,
			action: "reads do not change until the projection is resumed (hubcloud projections " +
				"resume)",
		}
	case readmodel.Rejects(err):
		return "", &problem{
			detail: "the database cannot be used, so lists and single reads are answered 503: " +
				err.Error(),
			action: "correct --postgres-url or the database; the service recovers by itself",
			cause:  err, lasting: true, serves: true,
		}
	case err != nil:
		return "", &problem{
			detail: "the database does not answer: lists and single reads are answered 503; " +
				"commands, events and live reads of devices work",
			action: "check that PostgreSQL runs and accepts connections; the log has the error",
			cause:  err, serves: true,
			// A database that has not answered since the start is not one that reconnects.
			lasting: !s.claimed(),
		}
	}
	return "complete", nil
}

// checkAccess checks whether the replica's index of API keys and hubs is loaded and current.
func (s *readModels) checkAccess(context.Context) (string, *problem) {
	if err := s.access.Ready(); err != nil {
		return "", &problem{
			detail: err.Error(), cause: err, lasting: true,
			action: "wait until the index of keys and hubs is read from the directory",
		}
	}
	if err := s.freshness.Err(); err != nil {
		return "", &problem{
			detail: "cut off from the directory: requests with a key are answered 503",
			cause:  err, lasting: true,
			action: "check that a majority of the broker's servers run and that --nats-url leads " +
				"to them; the service recovers by itself",
		}
	}
	return fmt.Sprintf("up to event %d of the directory", s.access.Applied()), nil
}

// checkBridge checks whether the replica holds the leases of its share of the shards.
func (s *hubLink) checkBridge(context.Context) (string, *problem) {
	if err := s.bridge.Ready(); err != nil {
		return "", &problem{
			detail: err.Error(), cause: err,
			action: "check that the broker stores (hubcloud doctor): messages of the hubs on " +
				"those shards wait until a replica holds the lease",
		}
	}
	return "every shard of its share has a lease", nil
}
