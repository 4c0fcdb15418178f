CASE WHEN rank IS NULL THEN NULL
     WHEN rank > teams THEN concat('behind all ', teams, ' teams')
     WHEN rank = 1 THEN concat('ahead of or level with all ', teams, ' teams, ', CASE medal WHEN 'none' THEN 'no' ELSE medal END, ' medal')
     ELSE concat('place ', rank, ' among ', teams, ' teams, ', CASE medal WHEN 'none' THEN 'no' ELSE medal END, ' medal')
END
