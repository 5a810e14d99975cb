package portal

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
)

const (
	// maxCommands is how many commands the page shows.
	maxCommands = 200
	// maxCommandHubs is how many hubs' commands the page includes.
	maxCommandHubs = 1000
	// concurrentLogReads is how many hubs' commands are read at once.
	concurrentLogReads = 8
	// outcomesTimeout bounds the search for the outcomes of commands.
	outcomesTimeout = 3 * time.Second
)

// commandLogView is the page of the organization's recent commands.
type commandLogView struct {
	Layout
	Rows []commandRow
	// Asked is how many hubs the page includes if the organization has more; otherwise 0.
	Asked int
}

// commandRow is one command.
type commandRow struct {
	domain.CommandRecord
	Who string
	// HubName is the hub's name, or its id if it has none.
	HubName string
	// Device is the name of the device, or its number if no name is known.
	Device string
	// Channel is the label of the channel, and To the text of the value that it was set to.
	Channel, To string
	// Result is the text of the outcome, and Mark its style: good, bad or wait.
	Result, Mark string
}

// commandLog shows the commands that people and API keys sent within the retention, newest first.
func (req *request) commandLog() error {
	hubs, err := req.ReadModels.Hubs(req.ctx, domain.Reach{OrgID: req.org}, nil, maxCommandHubs, "")
	if err != nil {
		return err
	}
	done, err := req.readCommands(req.ctx, hubs.Data, maxCommands)
	if err != nil {
		return err
	}
	actors := map[domain.Actor]string{}
	if err := req.actorNames(req.ctx, done, actors); err != nil {
		return err
	}
	names := map[domain.HubID]string{}
	for _, hub := range hubs.Data {
		if names[hub.ID] = string(hub.ID); hub.Name != nil {
			names[hub.ID] = *hub.Name
		}
	}
	outcomesCtx, cancel := context.WithTimeout(req.ctx, outcomesTimeout)
	defer cancel()
	outcomes, reported := req.outcomesOf(outcomesCtx, done)
	var asked []domain.HubID
	for _, command := range done {
		if !slices.Contains(asked, command.HubID) {
			asked = append(asked, command.HubID)
		}
	}
	devices, err := req.deviceInfosOf(asked)
	if err != nil {
		return err
	}
	view := commandLogView{}
	if hubs.HasMore {
		view.Asked = len(hubs.Data)
	}
	for i, command := range done {
		row := commandRow{
			CommandRecord: command,
			Who:           actorText(command.Actor, actors[command.Actor]),
			HubName:       names[command.HubID],
			Device: cmp.Or(
				devices[command.HubID][command.DeviceID].Name,
				deviceNumber(command.DeviceID),
			),
		}
		if row.Result, row.Mark = resultOf(command); command.Outcome == "accepted" {
			outcome := outcomeTexts[string(outcomes[i])]
			_, value := describeValue(command.Key, reported[i])
			row.Result, row.Mark = fill(outcome.Text, "value", value), outcome.Mark
		}
		row.Channel, row.To = describeValue(command.Key, command.Value)
		if command.Endpoint > 0 {
			row.Channel += " " + strconv.FormatInt(command.Endpoint, 10)
		}
		view.Rows = append(view.Rows, row)
	}
	view.Layout = req.layout("Commands", "events")
	req.render(http.StatusOK, "command-log.html", view)
	return nil
}

// readCommands returns the newest commands of hubs that this organization sent, at most limit of
// them, newest first.
func (req *request) readCommands(
	ctx context.Context, hubs []domain.Hub, limit int,
) ([]domain.CommandRecord, error) {
	var mu sync.Mutex
	var all []domain.CommandRecord
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentLogReads)
	for _, hub := range hubs {
		group.Go(func() error {
			some, err := req.History.History(ctx, hub.ID, req.info.At.Add(-req.Retention), limit)
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
		all, func(c domain.CommandRecord) bool { return c.OrgID != req.org },
	)
	slices.SortStableFunc(all, func(a, b domain.CommandRecord) int { return b.At.Compare(a.At) })
	return all[:min(len(all), limit)], nil
}

// actorNames adds the names of the members and keys that sent the commands, as far as they still
// exist.
func (req *request) actorNames(
	ctx context.Context, done []domain.CommandRecord, names map[domain.Actor]string,
) error {
	if len(done) == 0 {
		return nil
	}
	org, err := req.Directory.Org(ctx, req.org)
	if err != nil {
		return err
	}
	for _, command := range done {
		actor := command.Actor
		if _, known := names[actor]; known {
			continue
		}
		var err error
		switch actor.Kind {
		case domain.ActorMember:
			member, _ := org.Member(actor.ID) // zero for a former member
			names[actor] = member.DisplayName()
		case domain.ActorKey:
			var k domain.KeyView
			k, err = req.ReadModels.Key(ctx, req.org, actor.ID)
			names[actor] = k.Label
		}
		if err != nil && !errors.Is(err, &domain.Error{Code: domain.CodeNotFound}) {
			return err
		}
	}
	return nil
}

// resultOf returns the text and the style of a command's outcome. The outcome is what the sender
// got as answer; what the device did after its hub accepted the command is a commandOutcome.
func resultOf(c domain.CommandRecord) (result, mark string) {
	switch c.Outcome {
	case "":
		return "No answer yet", "wait"
	case "canceled":
		return "Canceled", "wait"
	case string(domain.CodeHubOffline):
		return "Not sent: the hub was offline", "bad"
	case string(domain.CodeHubUnavailable):
		return "Not sent: the hub was not ready", "bad"
	case string(domain.CodeHubTimeout):
		return "No answer from the hub", "bad"
	}
	return "Rejected by the hub", "bad"
}
