-- Keys and indexes of the tables in schema.sql, on a table that many rows are loaded into made afterwards. First the primary keys, by which rows
-- are changed, then what else must hold and what lists are read by.

ALTER TABLE orgs ADD PRIMARY KEY (id);
ALTER TABLE members ADD PRIMARY KEY (org_id, id);
ALTER TABLE invitations ADD PRIMARY KEY (org_id, id);
ALTER TABLE sites ADD PRIMARY KEY (id);
ALTER TABLE hubs ADD PRIMARY KEY (id);
ALTER TABLE device_labels ADD PRIMARY KEY (hub_id, device_id);
ALTER TABLE api_keys ADD PRIMARY KEY (id);
ALTER TABLE people ADD PRIMARY KEY (org_id, id);
ALTER TABLE activity ADD PRIMARY KEY (org_id, sequence);

CREATE UNIQUE INDEX members_owners_first ON members (org_id, (role <> 'owner'), joined_sequence);
CREATE UNIQUE INDEX invitations_newest_first ON invitations (org_id, created_sequence) WHERE status = 'pending';
CREATE UNIQUE INDEX sites_oldest_first ON sites (org_id, created_sequence);
CREATE UNIQUE INDEX hubs_of_org ON hubs (org_id, id);
CREATE UNIQUE INDEX hubs_of_site ON hubs (org_id, site_id, id);
CREATE INDEX activity_by_time ON activity (at);
