package mcpserver

import (
	"context"

	"hubcloud/httpapi/client"
)

type attentionArguments struct {
	SiteID string `json:"site_id,omitempty" jsonschema:"only at this site"`
	HubID  string `json:"hub_id,omitempty" jsonschema:"only of this hub"`
	Limit  *int   `json:"limit,omitempty" jsonschema:"most conditions, 1 to 50; 20 by default"`
}

// needsAttention lists what the portal shows as what needs attention.
func needsAttention(ctx context.Context, api *client.Client, in attentionArguments) (any, error) {
	page, err := listArguments{Limit: in.Limit}.page()
	if err != nil {
		return nil, err
	}
	return api.Attention(ctx, client.AttentionFilter{
		SiteID: in.SiteID, HubID: in.HubID, Limit: page.Limit,
	})
}
