package portal

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/httpapi/portal/live"
)

const (
	// maxCommands is how many commands the page shows, and commandsOf how long they are kept.
	maxCommands = 200
	commandsOf  = 24 * time.Hour
	// maxCommandHubs is the most hubs whose commands are looked for.
	maxCommandHubs = 1000
	// concurrentLogReads is how many hubs' logs are read at once.
	concurrentLogReads = 8
)

// commandLogView is the page that tells who had which device do what.
type commandLogView struct {
	Layout
	Rows []commandRow
	// Asked is how many hubs were looked at, when there are more.
	Asked int
}

// commandRow is one command.
type commandRow struct {
	domain.CommandDone
	Who string
	// HubName is what the hub is called, its id when it has no name.
	HubName string
	// Channel is what was set is called, To what it was to be, in words.
	Channel, To string
	// Result says what came of it, and Mark how that is shown.
	Result, Mark string
}

// commandLog tells of the last day's commands, newest first: those of people and those of API keys.
func (req *request) commandLog() error {
	ctx := req.http.Context()
	hubs, err := req.portal.ReadModels.Hubs(ctx, req.member.OrgID, nil, maxCommandHubs, "")
	if err != nil {
		return err
	}
	done, err := req.readCommands(ctx, hubs.Data)
	if err != nil {
		return err
	}
	actors, err := req.actorNames(ctx, done)
	if err != nil {
		return err
	}
	called := map[domain.HubID]string{}
	for _, hub := range hubs.Data {
		if called[hub.ID] = string(hub.ID); hub.Name != nil {
			called[hub.ID] = *hub.Name
		}
	}
	view := commandLogView{}
	if hubs.HasMore {
		view.Asked = len(hubs.Data)
	}
	for _, command := range done {
		line := commandRow{
			CommandDone: command,
			Who:         actorText(command.Actor, actors[command.Actor]),
			HubName:     called[command.HubID],
		}
		line.Result, line.Mark = resultOf(command)
		line.Channel, line.To = live.Describe(command.Key, command.Value)
		view.Rows = append(view.Rows, line)
	}
	view.Layout = req.layout("Commands", "activity")
	req.render(http.StatusOK, "command-log.html", view)
	return nil
}

// commandsOf reads the newest commands of hubs.
func (req *request) readCommands(
	ctx context.Context, hubs []domain.Hub,
) ([]domain.CommandDone, error) {
	var mu sync.Mutex
	var all []domain.CommandDone
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentLogReads)
	for _, hub := range hubs {
		group.Go(func() error {
			some, err := req.portal.History.History(
				ctx, hub.ID, req.info.At.Add(-commandsOf), maxCommands,
			)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, some...)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(
		all, func(c domain.CommandDone) bool { return c.OrgID != req.member.OrgID },
	)
	slices.SortStableFunc(all, func(a, b domain.CommandDone) int { return b.At.Compare(a.At) })
	return all[:min(len(all), maxCommands)], nil
}

// actors gives what those are called who sent the commands: the members and keys of now.
func (req *request) actorNames(
	ctx context.Context, done []domain.CommandDone,
) (map[domain.Actor]string, error) {
	names := map[domain.Actor]string{}
	for _, command := range done {
		actor := command.Actor
		if _, known := names[actor]; known {
			continue
		}
		var err error
		switch actor.Kind {
		case domain.ActorMember:
			var m domain.Member
			m, err = req.portal.ReadModels.Member(ctx, req.member.OrgID, actor.ID)
			names[actor] = m.Email
		case domain.ActorKey:
			var k domain.KeyView
			k, err = req.portal.ReadModels.Key(ctx, req.member.OrgID, actor.ID)
			names[actor] = k.Label
		}
		if err != nil && !errors.Is(err, &domain.Error{Code: domain.CodeNotFound}) {
			return nil, err
		}
	}
	return names, nil
}

// resultOf says what came of a command, as far as its caller heard. What the device then did is in
// the hub's event log.
func resultOf(c domain.CommandDone) (result, mark string) {
	switch c.Outcome {
	case "":
		return "no answer yet", "wait"
	case "accepted":
		return "accepted", "good"
	case "canceled":
		return "given up", "wait"
	case string(domain.CodeHubOffline):
		return "hub offline", "bad"
	case string(domain.CodeHubUnavailable):
		return "hub not ready", "bad"
	case string(domain.CodeHubTimeout):
		return "no answer from the hub", "bad"
	}
	return "refused", "bad"
}
