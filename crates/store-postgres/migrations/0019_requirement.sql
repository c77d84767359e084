-- Terms may refer to the text of their requirements, which a service of an earlier version cannot read.
UPDATE compatibility SET oldest = 19;
