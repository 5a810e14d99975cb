package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"hubcloud/httpapi/client"
)

// feedFlags select events of the organization's feed.
type feedFlags struct {
	Site []string `help:"Only the hubs at this site; may be repeated." placeholder:"SITE" complete:"site" group:"Selection of events:"`
	Hub  []string `help:"Only this hub; may be repeated." placeholder:"HUB" complete:"hub" group:"Selection of events:"`
	Type []string `help:"Only this type of event, such as channel.observed, or with this prefix, such as device.*; may be repeated." placeholder:"TYPE" group:"Selection of events:"`
	Part string   `help:"Only the I-th of N parts of the hubs, such as 2/8. The parts 1/8 to 8/8 together have each hub once." placeholder:"I/N" group:"Selection of events:"`
}

// given reports whether any of the flags is given.
func (f *feedFlags) given() bool {
	return len(f.Site) > 0 || len(f.Hub) > 0 || len(f.Type) > 0 || f.Part != ""
}

// Validate checks the flags. The flag parser calls it.
func (f *feedFlags) Validate() error {
	if _, _, ok := f.part(); !ok {
		return fmt.Errorf("--part %q: must be I/N with I from 1 to N, such as 2/8", f.Part)
	}
	return nil
}

// part parses --part. It returns zeros if the flag is not given.
func (f *feedFlags) part() (part, parts int, ok bool) {
	if f.Part == "" {
		return 0, 0, true
	}
	first, second, _ := strings.Cut(f.Part, "/")
	part, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	parts, err = strconv.Atoi(second)
	return part, parts, err == nil && 1 <= part && part <= parts
}

// filter returns the selection. The flags must be valid.
func (f *feedFlags) filter(
	ctx context.Context, api *client.Client,
) (filter client.FeedFilter, err error) {
	filter.Types = f.Type
	filter.Part, filter.Parts, _ = f.part()
	if filter.SiteIDs, err = idsOf(ctx, api, f.Site, siteID); err != nil {
		return filter, err
	}
	filter.HubIDs, err = idsOf(ctx, api, f.Hub, hubID)
	return filter, err
}
