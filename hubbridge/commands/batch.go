package commands

import (
	"context"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
)

// concurrentHubs is how many hubs SendAll sends to at once.
const concurrentHubs = 16

// SendAll sends commands, to several hubs at once and to each hub in order, and returns their
// results in the same order. A hub that does not answer a command gets no further ones: these have
// the hub's error, or domain.ErrCommandSkipped.
func (c *Commands) SendAll(
	ctx context.Context, o domain.Origin, all []domain.Command,
) []domain.CommandResult {
	return sendAll(all, func(command domain.Command) (domain.SentCommand, error) {
		return c.Send(ctx, o, command)
	})
}

// sendAll is SendAll with a function that sends a command.
func sendAll(
	all []domain.Command, send func(domain.Command) (domain.SentCommand, error),
) []domain.CommandResult {
	results := make([]domain.CommandResult, len(all))
	byHub := map[domain.HubID][]int{}
	for i := range all {
		byHub[all[i].HubID] = append(byHub[all[i].HubID], i)
	}
	var hubs errgroup.Group
	hubs.SetLimit(concurrentHubs)
	for _, indexes := range byHub {
		hubs.Go(func() error {
			var silent error
			for _, i := range indexes {
				if results[i].Err = silent; silent != nil {
					continue
				}
				results[i].SentCommand, results[i].Err = send(all[i])
				switch domain.CodeOf(results[i].Err) {
				case domain.CodeHubTimeout, domain.CodeHubError:
					silent = domain.ErrCommandSkipped
				case domain.CodeHubOffline, domain.CodeHubUnavailable:
					silent = results[i].Err
				}
			}
			return nil
		})
	}
	_ = hubs.Wait() // failures are in the results
	return results
}
