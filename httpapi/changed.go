package httpapi

import (
	"context"
	"errors"
	"time"

	"hubcloud/domain"
)

// The answer to a change has two sources: the fields that the change sets come from its result, and
// the others from the read models, which may lag.

// changedReadTimeout bounds how long the answer to a change waits for the read models once the
// change is stored.
const changedReadTimeout = 3 * time.Second

// changedSite returns the body of a site after a change.
func (a *api) changedSite(
	ctx context.Context, org string, state domain.SiteState,
) (siteBody, error) {
	ctx, cancel := context.WithTimeout(ctx, changedReadTimeout)
	defer cancel()
	site, err := a.ReadModels.Site(ctx, org, state.ID)
	if err != nil && domain.CodeOf(err) != domain.CodeNotFound { // not found: the read models lag
		return siteBody{}, changedUnread("site", err)
	}
	changed := state.View()
	changed.HubCount = site.HubCount
	return newSiteBody(changed), nil
}

// changedHub returns the body of a hub after a change.
func (a *api) changedHub(ctx context.Context, org string, state domain.HubState) (hubBody, error) {
	ctx, cancel := context.WithTimeout(ctx, changedReadTimeout)
	defer cancel()
	hub, err := a.ReadModels.Hub(ctx, org, state.ID)
	switch {
	case err == nil:
	case domain.CodeOf(err) == domain.CodeNotFound: // the read models lag
		hub = domain.Hub{Status: domain.HubUnknown, Since: state.AddedAt}
		if state.ConnectedWhenAdded {
			hub.Status = domain.HubOnline
		}
	default:
		return hubBody{}, changedUnread("hub", err)
	}
	hub.ID, hub.Name, hub.SiteID, hub.AddedAt = state.ID, state.Name, state.SiteID, state.AddedAt
	return newHubBody(hub), nil
}

// changedUnread returns the error of a change that is stored but cannot be shown, because the read
// models do not answer. The request can be repeated: the change is made once.
func changedUnread(what string, err error) error {
	if domain.CodeOf(err) != domain.CodeServiceUnavailable &&
		!errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return domain.UnavailableBecause(
		err,
		"the change is stored, but the %s cannot be read at the moment; "+
			"the request can be repeated",
		what,
	)
}
