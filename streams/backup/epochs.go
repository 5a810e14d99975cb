package backup

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/directory"
	"hubcloud/streams/journal"
)

// parallelEpochs is how many epochs are begun at a time: each waits for the broker.
const parallelEpochs = 64

// lastSequences returns the last sequence of each hub's log in the restored journals, and stores
// where the logs end: the service finds that also if the journals have expired until then.
func (r *restorer) lastSequences(
	ctx context.Context, m Manifest,
) (map[domain.HubID]uint64, error) {
	last := map[domain.HubID]uint64{}
	groups := 0
	for _, f := range m.Files {
		if f.Stream != nil && isJournal(f.Stream.Name) && f.Stream.Name != streams.JournalIndexStream {
			groups++
		}
	}
	if groups == 0 {
		return last, nil
	}
	journals, err := journal.New(journal.Config{
		Conn: r.conns.Cloud, Groups: groups, Retention: time.Hour, // nothing is declared
	})
	if err != nil {
		return nil, err
	}
	for group := range groups {
		index, err := journals.ReadIndex(ctx, group)
		if err == nil {
			err = journals.SaveIndex(ctx, index)
		}
		if err != nil {
			return nil, err
		}
		for hub, tip := range index.Tips() {
			last[hub] = tip.Seq
		}
	}
	return last, nil
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
