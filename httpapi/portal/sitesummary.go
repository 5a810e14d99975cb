package portal

import (
	"context"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// unlockedReads bounds the reads of locks that are not locked: findPage of them each.
const unlockedReads = 20

// siteSummary is a site with what a person compares between sites.
type siteSummary struct {
	domain.Site
	Hubs, Online, Offline int
	// Alarms counts the alarms that nobody has seen, as the list on the site's page does, Unlocked the
	// doors that are not locked.
	Alarms, Unlocked, LowBatteries int
}

// summarize returns the sites with their hubs and what their devices last reported, and whether the
// reports could be read.
func (req *request) summarize(sites []domain.Site) (rows []siteSummary, known bool, err error) {
	hubs, err := req.hubStates(req.ctx, req.org, "")
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(req.ctx, attentionTimeout)
	defer cancel()
	var view attentionView
	conditions, err := req.conditions(ctx, &view, hubs, nil)
	if err != nil {
		return nil, false, err
	}
	bySite := make(map[string]*siteSummary, len(sites))
	rows = make([]siteSummary, len(sites))
	for i, site := range sites {
		rows[i].Site, bySite[site.ID] = site, &rows[i]
	}
	count := func(site string, add func(*siteSummary)) {
		if row := bySite[site]; row != nil {
			add(row)
		}
	}
	for _, hub := range hubs {
		count(hub.SiteID, func(row *siteSummary) {
			row.Hubs++
			switch hub.Shown(req.info.At) {
			case domain.HubOnline:
				row.Online++
			case domain.HubOffline:
				row.Offline++
			}
		})
	}
	conditionsAt := map[string][]conditionRow{}
	for _, condition := range conditions {
		conditionsAt[condition.SiteID] = append(conditionsAt[condition.SiteID], condition)
		if condition.Kind == attention.Battery {
			count(condition.SiteID, func(row *siteSummary) { row.LowBatteries++ })
		}
	}
	for site, conditions := range conditionsAt {
		var list attentionView
		list.add(conditions)
		count(site, func(row *siteSummary) { row.Alarms = list.Alarms })
	}
	unlocked, err := req.countUnlocked(ctx)
	for site, n := range unlocked {
		count(site, func(row *siteSummary) { row.Unlocked = n })
	}
	return rows, err == nil && !view.Unknown, nil
}

// countUnlocked returns how many locks of each site last reported that they are not locked.
func (req *request) countUnlocked(ctx context.Context) (map[string]int, error) {
	key, locked, counts := "lock", false, map[string]int{}
	filter := domain.StateFilter{Key: &key, Value: &locked}
	after := domain.StatePosition{}
	for range unlockedReads {
		page, err := req.Reported.States(ctx, domain.Reach{OrgID: req.org}, filter, findPage, after)
		if err != nil {
			return nil, err
		}
		for _, state := range page.Data {
			counts[state.SiteID]++
		}
		if after = page.Next; !page.HasMore {
			break
		}
	}
	return counts, nil
}
