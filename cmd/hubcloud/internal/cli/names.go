package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
	"hubcloud/httpapi/client"
)

// maxCandidates is how many of the items with an ambiguous name an error lists.
const maxCandidates = 10

// pick returns the only item with a name, whatever its case.
func pick[T any](
	what, name string, items iter.Seq2[T, error], of func(T) (id, name string),
) (found T, err error) {
	var ids, names []string
	for item, err := range items {
		if err != nil {
			return found, err
		}
		id, itsName := of(item)
		names = append(names, itsName)
		if strings.EqualFold(itsName, name) {
			ids, found = append(ids, id), item
		}
	}
	switch {
	case len(ids) == 1:
		return found, nil
	case len(ids) > 1:
		more := ""
		if n := len(ids) - maxCandidates; n > 0 {
			ids, more = ids[:maxCandidates], fmt.Sprintf(" and %d more", n)
		}
		return found, installation.Usagef(
			"%s %q: several have this name; give an id: %s%s", what, name, strings.Join(ids, ", "),
			more,
		)
	}
	advice := ""
	if meant := domain.Closest(name, names); meant != "" {
		advice = fmt.Sprintf("; the nearest name is %q", meant)
	}
	return found, installation.Usagef("%s %q: none has this id or name%s", what, name, advice)
}

// hubID returns the id of the hub with an id or a name; "" for "". A name needs the scope
// hubs:read.
func hubID(ctx context.Context, api *client.Client, text string) (string, error) {
	if _, ok := domain.ParseHubID(text); ok || text == "" {
		return text, nil
	}
	hub, err := pick("hub", text, api.Hubs(ctx, ""), hubName)
	return hub.ID, err
}

func hubName(h client.ListedHub) (id, name string) { return h.ID, orEmpty(h.Name) }
func siteName(s client.Site) (id, name string)     { return s.ID, s.Name }

// siteID returns the id of the site with an id or a name; "" for "". A name needs the scope
// sites:read.
func siteID(ctx context.Context, api *client.Client, text string) (string, error) {
	if text == "" || len(text) == 36 && strings.Count(text, "-") == 4 {
		return text, nil
	}
	site, err := pick("site", text, api.Sites(ctx), siteName)
	return site.ID, err
}

// placeIDs returns the ids of a site and of a hub, each of which has an id or a name, or is "".
func placeIDs(ctx context.Context, api *client.Client, site, hub string) (siteIs, hubIs string, err error) {
	if siteIs, err = siteID(ctx, api, site); err == nil {
		hubIs, err = hubID(ctx, api, hub)
	}
	return siteIs, hubIs, err
}

// namesByID returns the names of items by id, for a table: none with --json, or if the key may not
// list the items.
func namesByID[T any](
	f outputFlags, items iter.Seq2[T, error], of func(T) (id, name string),
) (map[string]string, error) {
	names := map[string]string{}
	if f.JSON {
		return names, nil
	}
	for item, err := range items {
		if errors.Is(err, client.ErrInsufficientScope) {
			break
		}
		if err != nil {
			return nil, err
		}
		id, name := of(item)
		names[id] = name
	}
	return names, nil
}

// idsOf returns the ids for several ids or names.
func idsOf(
	ctx context.Context, api *client.Client, texts []string,
	idOf func(context.Context, *client.Client, string) (string, error),
) ([]string, error) {
	ids := make([]string, 0, len(texts))
	for _, text := range texts {
		id, err := idOf(ctx, api, text)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// deviceID returns the ids of a hub and of a device of it, each of which has an id or a name. For
// the name of a device, the hub is asked.
func deviceID(
	ctx context.Context, api *client.Client, hub, text string,
) (hubsID string, id int64, err error) {
	if hubsID, err = hubID(ctx, api, hub); err != nil {
		return "", 0, err
	}
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		return hubsID, id, nil
	}
	devices, err := api.Devices(ctx, hubsID)
	if err != nil {
		return "", 0, err
	}
	device, err := pick("device", text, each(devices), func(
		d client.ListedDevice,
	) (id, name string) {
		return strconv.FormatInt(d.ID, 10), d.Name
	})
	return hubsID, device.ID, err
}

// channelName is the key of a channel and its endpoint, as they are printed: switch#1, or lock for
// the endpoint 0.
type channelName struct {
	Key      string
	Endpoint int
	// hasEndpoint reports that the text has an endpoint.
	hasEndpoint bool
}

// matches reports whether a channel, which has the key, has the endpoint.
func (c channelName) matches(channel client.ChannelHead) bool {
	return !c.hasEndpoint || c.Endpoint == channel.Endpoint
}

// UnmarshalText parses the name. The flag parser calls it.
func (c *channelName) UnmarshalText(text []byte) error {
	key, endpoint, given := strings.Cut(string(text), "#")
	n, err := strconv.ParseUint(endpoint, 10, 31)
	if key == "" || given && err != nil {
		return fmt.Errorf(
			"channel %q: must be a key, or a key and an endpoint such as switch#1", text,
		)
	}
	*c = channelName{key, int(n), given}
	return nil
}
