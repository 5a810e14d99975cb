package backup

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
)

// parallelEpochs is how many epochs are begun at a time: each waits for the broker.
const parallelEpochs = 64

// lastSequences returns the last sequence of each hub log in a backup.
func lastSequences(m Manifest) map[domain.HubID]uint64 {
	last := map[domain.HubID]uint64{}
	for _, f := range m.Files {
		if f.Stream != nil && isHubLog(f.Stream.Name) {
			hub := strings.TrimPrefix(f.Stream.Name, streams.HubStream(""))
			last[domain.HubID(hub)] = f.Stream.Last
		}
	}
	return last
}

// renewEpochs begins a new epoch of every log whose hub belongs to an organization. last has the
// last sequence of each restored log.
func (r *restorer) renewEpochs(ctx context.Context, last map[domain.HubID]uint64) error {
	log, err := directory.Open(ctx, r.conns, r.cfg.Replicas)
	if err != nil {
		return err
	}
	head, err := log.Head(ctx, 0)
	if err != nil || head == 0 {
		return err
	}
	owned := map[domain.HubID]bool{}
	err = log.Replay(ctx, 0, head, func(batch []directory.Recorded) error {
		for _, event := range batch {
			switch fact := event.Fact.(type) {
			case domain.HubAdded:
				owned[fact.HubID] = true
			case domain.HubReleased:
				delete(owned, fact.HubID)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	service := directory.NewService(log, directory.ServiceConfig{})
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelEpochs)
	for hub := range owned {
		group.Go(func() error {
			_, err := service.RestoreLog(ctx, r.cfg.Origin, hub, last[hub])
			return err
		})
	}
	return group.Wait()
}
