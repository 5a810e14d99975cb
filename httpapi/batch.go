package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
)

const (
	// maxBatch is how many channels one request may set.
	maxBatch = 500
	// maxSelectPages is how many pages of states are searched for the channels that a request
	// selects.
	maxSelectPages = 20
	// batchHubs is how many hubs' states are read at once.
	batchHubs = 8
	// replacedAfter is how long after a command another value that was asked for may be older than
	// the command.
	replacedAfter = 10 * time.Second
	// batchKey begins the keys under which batches are remembered. Clients' keys have no such
	// characters.
	batchKey = "\x00commands\x00"
)

// batchBody is the answer about several commands, or about one.
type batchBody struct {
	ID        string          `json:"id"`
	CreatedAt string          `json:"created_at"`
	Key       string          `json:"key"`
	Value     json.RawMessage `json:"value"`
	Data      []batchItem     `json:"data"`
}

// storedBatch is a batchBody as it is remembered.
type storedBatch struct {
	batchBody
	// SentBy is the id of the API key.
	SentBy string `json:"sent_by"`
}

// batchItem is a command of several. It is also stored, with the status from after the hub's answer.
type batchItem struct {
	ID       *string       `json:"id"`
	HubID    domain.HubID  `json:"hub_id"`
	DeviceID int64         `json:"device_id"`
	Endpoint int64         `json:"endpoint"`
	Status   batchStatus   `json:"status"`
	Error    *commandError `json:"error"`
}

// commandError is the rejection of a command.
type commandError struct {
	Type    domain.Code `json:"type"`
	Message string      `json:"message"`
}

// batchStatus is what has become of a command: the status of the channel since then, or one of
// these.
type batchStatus string

const (
	statusPending  = batchStatus(domain.ChannelPending)
	statusUnknown  = batchStatus(domain.ChannelUnknown)
	statusRejected = batchStatus("rejected")
	statusReplaced = batchStatus("replaced")
)

// batch is a request to set channels.
type batch struct {
	key      string
	value    json.RawMessage
	commands []domain.Command
	// selection chooses further channels; nil for none.
	selection *selection
}

// selection chooses channels by what the organization's devices last reported.
type selection struct {
	SiteID *string
	HubID  *domain.HubID
	Room   *string
}

// sendCommands sets up to maxBatch channels, and answers with an outcome for each.
func (a *api) sendCommands(req *request) error {
	key, err := req.idempotencyKey()
	if err != nil {
		return err
	}
	b, body, err := req.readBatch()
	if err != nil {
		return err
	}
	release, err := a.batches.Take(req.spender(), 1)
	if err != nil {
		return err
	}
	defer release()
	return req.answerOnce(
		http.StatusAccepted, key, body, func(ctx context.Context, id string) (any, error) {
			return a.runBatch(ctx, req, b, id, key)
		},
	)
}

// runBatch sends the commands of a batch and remembers their results under its id. Run again with
// the same id, it sends no command twice.
func (a *api) runBatch(
	ctx context.Context, req *request, b batch, id, key string,
) (batchBody, error) {
	now := a.Now()
	if id == "" {
		var entropy [10]byte
		rand.Read(entropy[:]) // never fails: it ends the program instead
		id = domain.NewUUIDv7(now, entropy)
	}
	if b.selection != nil {
		if err := a.selectChannels(ctx, req.key.Reach, &b); err != nil {
			return batchBody{}, err
		}
	}
	own := make([]domain.Command, 0, len(b.commands))
	places := make([]int, 0, len(b.commands))
	body := batchBody{
		ID: id, CreatedAt: domain.FormatTime(now), Key: b.key, Value: b.value,
		Data: make([]batchItem, len(b.commands)),
	}
	for i, c := range b.commands {
		body.Data[i] = batchItem{HubID: c.HubID, DeviceID: c.DeviceID, Endpoint: c.Endpoint}
		if !isWithin(a.Hubs, req.key.Reach, c.HubID) {
			body.Data[i].reject(domain.ErrHubNotFound())
			continue
		}
		c.OrgID, c.Key, c.Value = req.key.Reach.OrgID, b.key, b.value
		if key != "" {
			c.IdempotencyKey = fmt.Sprintf(
				"%s%s/%s/%d/%d", batchKey, id, c.HubID, c.DeviceID, c.Endpoint,
			)
		}
		own, places = append(own, c), append(places, i)
	}
	for i, result := range a.Commands.SendAll(ctx, req.origin(), own) {
		item := &body.Data[places[i]]
		if result.ID != "" {
			id := commandID(item.HubID, result.ID)
			item.ID = &id
		}
		if item.Status = statusPending; result.Err != nil {
			item.reject(result.Err)
		}
	}
	_, _, err := a.Idempotency.Once(
		ctx, req.key.Reach.OrgID, batchKey+id, nil,
		func(context.Context, string) ([]byte, error) {
			return json.Marshal(storedBatch{body, req.key.ID})
		},
	)
	return body, err
}

// reject sets the rejection of a command. After some errors the hub may have acted all the same.
func (i *batchItem) reject(err error) {
	public := response.FromError(err).Error
	i.Error, i.Status = &commandError{public.Code, public.Message}, statusRejected
	switch domain.CodeOf(err) {
	case domain.CodeHubTimeout, domain.CodeHubError, domain.CodeServiceUnavailable,
		domain.CodeInternal:
		i.Status = statusUnknown
	}
}

// selectChannels adds the writable channels that a batch selects to its commands.
func (a *api) selectChannels(ctx context.Context, reach domain.Reach, b *batch) error {
	filter := domain.StateFilter{Key: &b.key, SiteID: b.selection.SiteID, HubID: b.selection.HubID}
	known := map[batchChannel]bool{}
	for _, c := range b.commands {
		known[batchChannel{c.HubID, c.DeviceID, c.Endpoint}] = true
	}
	var after domain.StatePosition
	for range maxSelectPages {
		page, err := a.ReadModels.States(ctx, reach, filter, maxStates, after)
		if err != nil {
			return err
		}
		for _, s := range page.Data {
			room := b.selection.Room
			channel := batchChannel{s.HubID, s.DeviceID, s.Channel.Endpoint}
			if known[channel] || !s.Channel.Writable || room != nil && (s.Room == nil || *s.Room != *room) {
				continue
			}
			if len(b.commands) == maxBatch {
				return invalid(
					"select: makes more than %d channels; name a site, a hub or a room", maxBatch,
				)
			}
			b.commands = append(b.commands, domain.Command{
				HubID: s.HubID, DeviceID: s.DeviceID, Endpoint: s.Channel.Endpoint,
			})
		}
		if after = page.Next; !page.HasMore {
			return nil
		}
	}
	return invalid("select: has too many channels to look at; name a site or a hub")
}

// getCommands answers with what has become of the commands of a batch, or of one command.
func (a *api) getCommands(req *request) error {
	release, err := a.batches.Take(req.spender(), 1)
	if err != nil {
		return err
	}
	defer release()
	body, sent, err := a.findCommands(req.ctx, req.key, req.http.PathValue("command_id"))
	if err != nil {
		return err
	}
	if err := a.updateStatuses(req.ctx, req.key.Reach, &body, sent); err != nil {
		return err
	}
	if err := req.Reserve(200 * len(body.Data)); err != nil {
		return err
	}
	return req.writeJSON(http.StatusOK, body)
}

// findCommands returns the commands with an id as they were answered, and when they were sent.
func (a *api) findCommands(
	ctx context.Context, key domain.KeyAccess, id string,
) (body batchBody, sent time.Time, err error) {
	notFound := domain.Errorf(domain.CodeNotFound, "no such commands")
	hubText, commandText, single := strings.Cut(id, ".")
	if !single {
		if !domain.IsUUID(id) {
			return body, sent, notFound
		}
		stored, err := a.Idempotency.Answer(ctx, key.Reach.OrgID, batchKey+id)
		if err != nil {
			if domain.CodeOf(err) == domain.CodeNotFound {
				err = notFound
			}
			return body, sent, err
		}
		var batch storedBatch
		if err := json.Unmarshal(stored, &batch); err != nil {
			return body, sent, fmt.Errorf("commands %s: %w", id, err)
		}
		if key.Reach.Limited() && batch.SentBy != key.ID {
			return body, sent, notFound // it may have hubs that the key does not reach
		}
		sent, err = time.Parse(domain.TimeLayout, batch.CreatedAt)
		return batch.batchBody, sent, err
	}
	hub, ok := domain.ParseHubID(hubText)
	if !ok || !isWithin(a.Hubs, key.Reach, hub) {
		return body, sent, notFound
	}
	record, err := a.Commands.Find(ctx, hub, commandText)
	if err != nil || record.OrgID != key.Reach.OrgID {
		return body, sent, errors.Join(err, notFound)
	}
	item := batchItem{
		ID: &id, HubID: hub, DeviceID: record.DeviceID, Endpoint: record.Endpoint,
		Status: statusPending,
	}
	if code := domain.Code(record.Outcome); code != "" && code != "accepted" {
		item.reject(&domain.Error{Code: code, Message: record.Message})
	}
	return batchBody{
		ID: id, CreatedAt: domain.FormatTime(record.At), Key: record.Key, Value: record.Value,
		Data: []batchItem{item},
	}, record.At, nil
}

// updateStatuses sets the statuses of commands that hubs may have carried out since.
func (a *api) updateStatuses(
	ctx context.Context, reach domain.Reach, body *batchBody, sent time.Time,
) error {
	byHub := map[domain.HubID][]*batchItem{}
	for i := range body.Data {
		if item := &body.Data[i]; item.Status != statusRejected {
			byHub[item.HubID] = append(byHub[item.HubID], item)
		}
	}
	hubs, ctx := errgroup.WithContext(ctx)
	hubs.SetLimit(batchHubs)
	for hub, items := range byHub {
		hubs.Go(func() error {
			filter := domain.StateFilter{HubID: &hub, Key: &body.Key}
			var after domain.StatePosition
			for more := true; more; {
				page, err := a.ReadModels.States(ctx, reach, filter, maxStates, after)
				if err != nil {
					return err
				}
				for _, item := range items {
					for i := range page.Data {
						item.take(&page.Data[i], body.Value, sent, a.Now())
					}
				}
				after, more = page.Next, page.HasMore
			}
			return nil
		})
	}
	return hubs.Wait()
}

// take takes the state of a channel, if it is the command's. The state is of this command if its
// value was asked for since.
func (i *batchItem) take(s *domain.ReportedState, value json.RawMessage, sent, now time.Time) {
	if s.DeviceID != i.DeviceID || s.Channel.Endpoint != i.Endpoint {
		return
	}
	asked := s.Logged.Desired
	switch {
	case asked.Before(sent): // the state is older than the command
	case domain.SameValue(s.Channel.Desired, value):
		i.Status = batchStatus(s.Channel.Status)
	case now.Sub(sent) > replacedAfter || asked.Sub(sent) > replacedAfter:
		i.Status = statusReplaced
	}
}

// commandID returns the id of a command, "" for a command without one.
func commandID(hub domain.HubID, id string) string {
	if id == "" {
		return ""
	}
	return string(hub) + "." + id
}
